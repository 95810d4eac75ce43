#!/usr/bin/env bash
# Puts prometheus and promtool into a folder, out of Debian's package, without installing it: no root
# is needed, no service starts.
#
#     docker/get_prometheus.sh .venv/bin
#
# There is none on PyPI. On another system, put both on the PATH yourself.
set -euo pipefail
folder=$(realpath "$1")
if command -v promtool >/dev/null && command -v prometheus >/dev/null; then exit 0; fi
if [[ -x $folder/promtool && -x $folder/prometheus ]]; then exit 0; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
if ! apt-cache show prometheus >/dev/null 2>&1 && [[ $(id -u) == 0 ]]; then
    apt-get update -qq
fi
apt-get download -qq prometheus
dpkg-deb --extract prometheus_*.deb .
cp usr/bin/prometheus usr/bin/promtool "$folder"

#!/usr/bin/env bash
# Builds the image of the sample's worker without a daemon: buildah, in a chroot, files copied (vfs).
#
#     docker/build_image.sh                 # with the base image of the Dockerfile, from its registry
#     docker/build_image.sh --stand-in      # where no registry is reached: a base from Debian's packages
#
# Needs buildah; --stand-in also debootstrap and root. Debian: apt-get install buildah debootstrap.
# The stand-in has Debian's Python, in the place and under the name of the real base image, so that
# the Dockerfile is the same. What is built on it is a proof of the Dockerfile; do not deploy it.
#
# Environment: IMAGE (the name to give it), PIP_CERT (a CA bundle that pip is to trust while building).
set -euo pipefail
cd "$(dirname "$0")/.."

IMAGE=${IMAGE:-agboss-temporal-sample:latest}
PYTHON_IMAGE=$(sed -n 's/^PYTHON_IMAGE=//p' docker/.env)
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs

build=(--file docker/Dockerfile --ignorefile docker/Dockerfile.dockerignore
       --format docker --build-arg "PYTHON_IMAGE=$PYTHON_IMAGE" --tag "$IMAGE")
if [[ -n ${PIP_CERT:-} ]]; then
    build+=(--volume "$PIP_CERT:/run/ca.crt:ro" --build-arg PIP_CERT=/run/ca.crt)
fi

if [[ ${1:-} == --stand-in ]]; then
    if ! buildah inspect --type image "$PYTHON_IMAGE" >/dev/null 2>&1; then
        root=$(mktemp -d)
        trap 'rm -rf "$root"' EXIT
        debootstrap --variant=minbase \
            --include=ca-certificates,python3,python3-venv,python3-pip,python-is-python3 \
            "${SUITE:-bookworm}" "$root" >"$root.log" || { tail -5 "$root.log" >&2; exit 1; }
        rm -f "$root.log"
        base=$(buildah from scratch)
        buildah copy --quiet "$base" "$root" / >/dev/null
        buildah commit --quiet --rm "$base" "$PYTHON_IMAGE" >/dev/null
    fi
    build+=(--pull-never)
fi

buildah bud "${build[@]}" .

# What was built, tried: the user, and that the worker's modules import.
container=$(buildah from --pull-never "$IMAGE")
trap 'buildah rm "$container" >/dev/null; rm -rf "${root:-}"' EXIT
echo "runs as: $(buildah run "$container" -- id)"
buildah run "$container" -- python -c '
import importlib, os, sys
importlib.import_module("samples.traced.worker")
open(os.environ["ORDER_WORLD"], "w").close()
print("imports: yes, with Python", sys.version.split()[0])
try:
    open("/app/x", "w")
except PermissionError:
    print("writes: only below /data")
else:
    sys.exit("the user may write to /app")'
buildah images "$IMAGE"

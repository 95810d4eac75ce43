#!/bin/sh
# The port is open before the server answers, so the job may fail; it is then started again.
set -eu

if ! temporal operator namespace describe -n "$TEMPORAL_NAMESPACE" >/dev/null 2>&1; then
    temporal operator namespace create -n "$TEMPORAL_NAMESPACE" --retention 7d
fi
for attribute in CompensationStatus=Keyword CompensationOpen=Int; do
    name=${attribute%=*}
    if ! temporal operator search-attribute list -n "$TEMPORAL_NAMESPACE" | grep -qw "$name"; then
        temporal operator search-attribute create -n "$TEMPORAL_NAMESPACE" \
            --name "$name" --type "${attribute#*=}"
    fi
done

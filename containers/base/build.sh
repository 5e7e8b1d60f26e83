#!/bin/sh
# Builds what stands in for the images' base, python:3.12-slim, where no container registry can be reached: Debian with
# Python 3.13 at /usr/local, from Debian's packages alone.
#   containers/base/build.sh ENGINE IMAGE      as root, with debootstrap; ENGINE: podman or docker
# An image that is there already is left as it is.
set -eu
engine=${1:?podman or docker} image=${2:?a name for the image}
suite=trixie

if "$engine" image inspect "$image" >/dev/null 2>&1; then
    echo "$image is there already."
    exit
fi
for needed in debootstrap chroot; do
    command -v "$needed" >/dev/null || { echo "There is no $needed on PATH (Debian: $needed)." >&2; exit 1; }
done
[ "$(id -u)" = 0 ] || { echo "debootstrap has to be run as root." >&2; exit 1; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
root=$scratch/root
debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv "$suite" "$root" >"$scratch/log" 2>&1 || {
    tail -n 5 "$scratch/log" >&2
    exit 1
}
# As in Docker's official images, `python` and `pip` are in /usr/local, where images copy further packages to.
chroot "$root" python3 -m venv /usr/local
for folder in var/cache/apt var/lib/apt/lists usr/share/doc usr/share/man usr/share/locale; do
    rm -rf "${root:?}/$folder"/*
done
# What this machine trusts, a company's proxy for instance, the builds have to trust too.
[ ! -r /etc/ssl/certs/ca-certificates.crt ] || cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
tar -C "$root" --exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*' -cf "$scratch/root.tar" .
"$engine" import --change 'CMD ["python3"]' "$scratch/root.tar" "$image" >/dev/null
echo "$image: Debian $suite, $(chroot "$root" /usr/local/bin/python --version)."

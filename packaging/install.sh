#!/bin/sh
# install.sh [PREFIX]: copies the program, its pages and completions beneath PREFIX, which is /usr/local
# for root and ~/.local for others, and prints what it has installed.
set -eu
cd "$(dirname "$0")"
if [ "$(id -u)" = 0 ]; then own=/usr/local; else own=$HOME/.local; fi
prefix=${1:-$own}
mkdir -p "$prefix"
cp -R bin sbin share "$prefix"
find bin sbin share ! -type d -exec printf '%s\n' "$prefix/{}" \;
# mount(8) looks nowhere else.
if [ "$prefix" = /usr/local ]; then ln -sfn "$prefix/bin/h5fs" /usr/sbin/mount.h5fs; fi

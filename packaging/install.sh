#!/bin/sh
# install.sh [PREFIX]: copies the program, its manual pages and completions to PREFIX, and prints
# the installed files. The default PREFIX is /usr/local for root, and ~/.local for other users.
set -eu
cd "$(dirname "$0")"
if [ "$(id -u)" = 0 ]; then own=/usr/local; else own=$HOME/.local; fi
prefix=${1:-$own}
find bin sbin share ! -type d | while read -r file; do
    mkdir -p "$prefix/$(dirname "$file")"
    # A program that runs, because a mount exists, can be replaced but not overwritten.
    cp -P "$file" "$prefix/$file.new"
    mv -f "$prefix/$file.new" "$prefix/$file"
    echo "$prefix/$file"
done
# mount(8) searches only this directory.
if [ "$prefix" = /usr/local ]; then ln -sfn "$prefix/bin/h5fs" /usr/sbin/mount.h5fs; fi

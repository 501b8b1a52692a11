#!/bin/sh
# $1 is "remove" for dpkg and 0 for rpm when the package goes; an upgrade leaves the service running.
if [ -d /run/systemd/system ]; then
  case "$1" in
    remove | 0) systemctl disable --now dragoman.socket dragoman.service || true ;;
  esac
fi

#!/bin/sh
# Installs the client libraries of other agents for test/foreign/*.test.ts, outside the repository:
#   $MORTISE_FOREIGN_DIR, or <temporary folder>/mortise-foreign
# Usage: sh test/foreign/install.sh [pi] [omp]       (both when none is named)
set -eu

folder="${MORTISE_FOREIGN_DIR:-${TMPDIR:-/tmp}/mortise-foreign}"
mkdir -p "$folder"

# No install scripts: only the client class of each package is used, and `bun` is taken from its platform package.
install() {
  name="$1"
  shift
  mkdir -p "$folder/$name"
  [ -f "$folder/$name/package.json" ] || printf '{"private":true}\n' > "$folder/$name/package.json"
  npm install --prefix "$folder/$name" --ignore-scripts --no-audit --no-fund --loglevel=error "$@"
  echo "Installed $name into $folder/$name"
}

[ $# -gt 0 ] || set -- pi omp
for name in "$@"; do
  case "$name" in
    pi) install pi @mariozechner/pi-coding-agent@0.73.1 ;;
    omp) install omp @oh-my-pi/pi-coding-agent@18.2.3 bun@1.3.14 ;;
    *) echo "Unknown client \"$name\"; expected pi or omp" >&2; exit 1 ;;
  esac
done

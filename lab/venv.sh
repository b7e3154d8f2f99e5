#!/bin/sh
# Make the tools' Python environment, once for each content of the requirements; prints nothing when it stands.
#
# usage: venv.sh DESTINATION REQUIREMENTS
set -eu
destination=$1 requirements=$2
# The second half: the Python that it was made with may have gone.
[ -e "$destination/complete" ] && "$destination/bin/python" -c '' 2>/dev/null && exit 0

python=
for candidate in python3.13 python3.12 python3.11 python3; do
    if "$candidate" -c 'import sys; assert sys.version_info >= (3, 11)' 2>/dev/null; then
        python=$(command -v "$candidate")
        break
    fi
done
missing=
[ -n "$python" ] || missing="python3 python3-venv"
[ -z "$python" ] || "$python" -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"
# timelib, which Salt needs, comes as source for some versions of Python.
command -v cc >/dev/null 2>&1 || missing="$missing build-essential python3-dev"
if [ -n "$missing" ]; then
    if [ "$(id -u)" != 0 ]; then
        echo "venv: $missing is missing; install it, or run make as root." >&2
        exit 1
    fi
    echo "venv: installing$missing" >&2
    apt-get update -qq
    # shellcheck disable=SC2086 - a list of names
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
    python=${python:-$(command -v python3)}
fi

echo "venv: installing the tools of $requirements" >&2
mkdir -p "$(dirname "$destination")"
rm -rf "$destination"
"$python" -m venv "$destination"
if ! "$destination/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"; then
    echo "venv: the Python packages could not be installed: is a package index reachable (pip config list)?" >&2
    exit 1
fi
touch "$destination/complete"

#!/usr/bin/env bash
# Installs what the peers and the tests in this folder need: Debian packages, npm packages (into node/) and PyPI packages
# (into python/venv). Quick when everything is there. Uses apt-get as root, or through sudo; otherwise it says what is missing.
set -euo pipefail
cd "$(dirname "$0")"

packages=(gcc g++ libc6-dev make cyclonedds-dev cyclonedds-tools libfastrtps-dev libfastcdr-dev tshark iproute2
  e2fsprogs util-linux sqlite3 nodejs qemu-user-static nbdkit libnbd-bin fuse3 libleveldb-dev libsqlite3-dev
  chromium prometheus p7zip-full
  python3-rosmaster python3-rostopic python3-rosservice python3-std-srvs python3-rosbag python3-std-msgs python3-sensor-msgs python3-nav-msgs python3-diagnostic-msgs
  python3-visualization-msgs python3-trajectory-msgs python3-stereo-msgs python3-shape-msgs python3-actionlib-msgs python3-map-msgs)

missing=()
for p in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$p")
done
command -v npm >/dev/null || missing+=(npm) # nodejs of other sources brings its own
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3 python3-venv)

if [ ${#missing[@]} -gt 0 ]; then
  sudo=()
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "install: these packages are missing, and this is neither root nor is there sudo: ${missing[*]}" >&2
      exit 1
    fi
    sudo=(sudo)
  fi
  if ! command -v apt-get >/dev/null; then
    echo "install: no apt-get here; the tests need (Debian's names): ${missing[*]}" >&2
    exit 1
  fi
  echo "install: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# The lock file names no registry: npm takes the configured one.
if ! cmp -s node/package-lock.json node/node_modules/.installed-lock.json; then
  (cd node && npm ci --silent --no-fund --no-audit)
  cp node/package-lock.json node/node_modules/.installed-lock.json
fi

# pip takes the configured index.
if ! cmp -s python/requirements.txt python/venv/.installed-requirements.txt; then
  rm -rf python/venv
  python3 -m venv python/venv
  python/venv/bin/pip install --quiet --disable-pip-version-check --requirement python/requirements.txt
  cp python/requirements.txt python/venv/.installed-requirements.txt
fi

# The headers of the C++ MCAP library (MIT), which no Debian package has: a package of PyPI carries them in its source.
if ! [ -e build/mcap/include/mcap/mcap.hpp ]; then
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  python/venv/bin/pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: --dest "$scratch" baglab-mcap-backend==1.1.0
  echo "ab441d761ad9ba4605a3bdd253bdd5f099b81c9c58161e189feed96031e88102  $scratch/baglab_mcap_backend-1.1.0.tar.gz" | sha256sum --check --quiet
  mkdir -p build/mcap
  tar -xzf "$scratch/baglab_mcap_backend-1.1.0.tar.gz" -C build/mcap --strip-components=5 --wildcards '*/third_party/mcap_repo/cpp/mcap/include/*' '*/third_party/mcap_repo/cpp/mcap/LICENSE'
fi

# For scripts that must work on a fresh machine: `require PACKAGE...`, names as in Debian, installs
# those whose program or header is missing, by apt-get where that is possible; else it says which
# are missing and exits with 1. Names are words: lists of them stay unquoted.
# shellcheck disable=SC2086

has_command() { command -v "$1" > /dev/null; }

has_header() {
  local root roots="${CPATH:-};${CMAKE_PREFIX_PATH:-}"
  for root in ${roots//[:;]/ } /usr /usr/local; do
    [[ -e $root/$1 || -e $root/include/$1 ]] && return 0
  done
  return 1
}

has_package() {
  case $1 in
    g++ | cmake | python3) has_command "$1" ;;
    ninja-build) has_command ninja || has_command make ;;
    libeigen3-dev) has_header eigen3/Eigen/Core ;;
    doctest-dev) has_header doctest/doctest.h ;;
    nlohmann-json3-dev) has_header nlohmann/json.hpp ;;
    libcli11-dev) has_header CLI/CLI.hpp ;;
    libbenchmark-dev) has_header benchmark/benchmark.h ;;
    *) false ;;
  esac
}

missing_among() {
  local package
  for package in "$@"; do
    has_package "$package" || echo "$package"
  done
}

apt_install() {
  local as_root=()
  has_command apt-get || return 1
  if [[ $(id -u) != 0 ]]; then
    has_command sudo || return 1
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -qq -y --no-install-recommends "$@"
}

require() {
  local missing
  missing=$(missing_among "$@")
  if [[ -z $missing ]]; then return; fi
  echo "missing:" $missing
  apt_install $missing || true
  missing=$(missing_among "$@")
  if [[ -n $missing ]]; then
    echo "$0: install these first (names as in Debian):" $missing >&2
    exit 1
  fi
}

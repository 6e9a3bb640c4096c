# shellcheck shell=bash
# Sourced by the other scripts: installs the project into .venv if pyproject.toml or the path of
# this checkout has changed since the last install.
#
# pip installs torch from PyPI, with CUDA (about 3 GB) even on a machine without an NVIDIA GPU. For
# the CPU build set its index before the first install:
#     PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu scripts/run --help

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
VENV="$ROOT/.venv"
STAMP="$VENV/.installed"

say() { printf '%s\n' "$*" >&2; }

# The stamp's text after an install: the project's state, then the extras.
wanted() { printf '%s %s %s' "$(cksum <"$ROOT/pyproject.toml")" "$ROOT" "$1"; }

# True if the extras $1 are installed; dev includes nanochat.
installed() {
  local found
  [[ -x "$VENV/bin/python" && -r "$STAMP" ]] || return 1
  found="$(<"$STAMP")"
  [[ "$found" == "$(wanted "$1")" || "$found" == "$(wanted dev)" ]]
}

make_venv() {
  local python="${PYTHON:-python3}"
  if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    say "Python 3.11 or newer is needed; $python is $("$python" --version 2>/dev/null || echo missing)."
    say "Install one, or name one you have: PYTHON=/path/to/python3.12 '$0'"
    return 1
  fi
  "$python" -m venv --clear "$VENV" >&2
}

install() {
  local log
  rm -f "$STAMP"
  if ! "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then # missing or incomplete
    make_venv || return 1
  fi
  say "Installing the project with [$1] into .venv: seconds to minutes, most of them for torch."
  log="$VENV/install.log"
  if ! (cd "$ROOT" && "$VENV/bin/python" -m pip install --progress-bar off -e ".[$1]") \
    >"$log" 2>&1; then
    cat "$log" >&2
    say "The install failed: pip's output is above and in $log. Fix the cause and run $0 again."
    return 1
  fi
  wanted "$1" >"$STAMP"
}

# Installs the project with the extras $1 into $VENV where needed; ends the script on an error.
ensure_venv() {
  if installed "$1"; then return; fi
  ( # one install at a time; macOS has no flock and goes without
    if command -v flock >/dev/null && ! flock -n 9; then
      say "Waiting for another install into .venv."
      flock 9
    fi
    installed "$1" || install "$1"
  ) 9<"$ROOT/scripts/_venv.sh" || exit 1
}

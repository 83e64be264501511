#!/usr/bin/env bash
# Make the lock files, plotly.js and the list of licences anew, from pyproject.toml and the versions in requirements.txt.
#   deploy/update.sh                      with PyTorch's CPU build from download.pytorch.org
#   TORCH_CPU=/folder deploy/update.sh    with the one in a folder of yours
# It needs uv (`pip install uv`), npm and xz, and writes no address of an index into a lock.
set -euo pipefail
cd "$(dirname "$0")/.."

pins=$(mktemp)
trap 'rm -f "$pins"' EXIT
grep -hE '^[A-Za-z0-9_.-]+==' requirements.txt requirements-dev.txt >"$pins"

lock() {
  local name=$1
  shift
  uv pip compile pyproject.toml --extra rooms --constraint "$pins" --generate-hashes --upgrade --quiet \
    --no-annotate --no-emit-index-url --no-emit-find-links \
    --python-version 3.11 --python-platform x86_64-manylinux_2_28 \
    --custom-compile-command "deploy/update.sh" --output-file "deploy/requirements-$name.lock" "$@"
}

lock cuda
python=.venv/bin/python
[ -x "$python" ] || python=python3
if [ -n "${TORCH_CPU:-}" ]; then
  lock cpu --find-links "$TORCH_CPU"
  "$python" deploy/one_build.py --find-links "$TORCH_CPU"
else
  lock cpu --torch-backend cpu
  "$python" deploy/one_build.py --extra-index-url https://download.pytorch.org/whl/cpu
fi

# plotly.js, as browsers get it: the bundle of the version that is in the package plotly.
version=$("$python" -c "import re; from plotly.offline import get_plotlyjs
print(re.search(r'plotly\.js v([\d.]+)', get_plotlyjs())[1])")
folder=$(mktemp -d)
(cd "$folder" && npm pack --silent "plotly.js-cartesian-dist-min@$version" && tar xzf ./*.tgz)
xz -9e -c "$folder/package/plotly-cartesian.min.js" >dashboard/server/plotly/plotly-cartesian.min.js.xz
rm -rf "$folder"
"$python" deploy/licences.py

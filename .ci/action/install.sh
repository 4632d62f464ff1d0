#!/usr/bin/env bash
# First step of the action: puts destkit on the path of the job. Takes the archive of
# a release for this machine, and nothing else. Reads INPUT_VERSION, ACTION_REF and the
# variables of the runner; a mirror of the releases can stand in DESTKIT_RELEASES_URL.
set -euo pipefail

releases=${DESTKIT_RELEASES_URL:-https://github.com/destkit/destkit/releases}
version=${INPUT_VERSION:-${ACTION_REF:-latest}}

# fail STATUS MESSAGE
fail() {
  printf '::error title=destkit::%s\n' "$2"
  printf 'exit-status=%s\n' "$1" >>"$GITHUB_OUTPUT"
  exit "$1"
}

# fetch URL FILE: prints the status of the answer, 000 when there was none.
fetch() {
  curl --silent --show-error --location --proto '=https' --retry 3 --max-time 300 \
    --output "$2" --write-out '%{http_code}' "$1" || true
}

# native PATH: as programs of this machine write it.
native() {
  if command -v cygpath >/dev/null 2>&1; then cygpath -w "$1"; else printf '%s\n' "$1"; fi
}

# It becomes part of URLs.
[[ $version =~ ^[A-Za-z0-9][A-Za-z0-9._/+-]*$ ]] ||
  fail 2 'version must be a tag such as v1.2.3, or latest'

case ${RUNNER_OS:-} in
  Linux) os=linux archive=tar.gz program=destkit ;;
  macOS) os=darwin archive=tar.gz program=destkit ;;
  Windows) os=windows archive=zip program=destkit.exe ;;
  *) os='' archive='' program=destkit ;;
esac
case ${RUNNER_ARCH:-} in
  X64) arch=amd64 ;;
  ARM64) arch=arm64 ;;
  *) arch='' ;;
esac
[[ -n $os && -n $arch ]] ||
  fail 3 "releases have no program for ${RUNNER_OS:-this system} ${RUNNER_ARCH:-}; use a runner with Linux, macOS or Windows on X64 or ARM64"
archive=destkit_${os}_$arch.$archive

dir=$(mktemp -d "${RUNNER_TEMP:-/tmp}/destkit.XXXXXX")
cd "$dir" # names without a folder mean the same to every program

# A tag that moves (v1) or stands for another (latest) is followed to the newest
# release, whose files are then all of that one release. A branch or a commit has
# no release.
exact='^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$'
tag=''
if [[ $version =~ $exact ]]; then
  tag=$version
elif [[ $version == latest || $version =~ ^v[0-9]+(\.[0-9]+)?$ ]]; then
  newest=$(curl --silent --proto '=https' --retry 3 --max-time 60 --output /dev/null \
    --write-out '%{redirect_url}' "$releases/latest" || true)
  newest=${newest##*/}
  [[ $newest =~ $exact ]] || fail 3 "$releases/latest leads to no release; set 'version' to a tag such as v1.2.3"
  [[ $version == latest || $newest == "$version".* ]] ||
    fail 3 "the newest release is $newest, which is no $version; set 'version' to an exact tag such as v1.2.3"
  tag=$newest
else
  fail 3 "a branch or a commit ($version) has no release; set 'version' to a tag such as v1.2.3, or to latest"
fi

code=$(fetch "$releases/download/$tag/$archive" "$archive")
[[ $code == 200 ]] || fail 3 "could not download $archive of $tag from $releases (status $code); is there a release $tag?"
code=$(fetch "$releases/download/$tag/SHA256SUMS" SHA256SUMS)
[[ $code == 200 ]] || fail 3 "the release $tag has no SHA256SUMS (status $code); $archive was not used"
want=$(awk -v name="$archive" '$2 == name { print $1 }' SHA256SUMS)
if command -v sha256sum >/dev/null 2>&1; then have=$(sha256sum <"$archive"); else have=$(shasum -a 256 <"$archive"); fi
have=${have%% *}
# A person must look at this: there is no other way to the program.
[[ -n $want && $want == "$have" ]] ||
  fail 3 "the checksum of $archive of $tag is ${have}, SHA256SUMS says ${want:-nothing}; it was not used"
case $archive in
  *.zip) unzip -q "$archive" "$program" ;;
  *) tar -xzf "$archive" "$program" ;;
esac
rm -f "$archive" SHA256SUMS

"./$program" version || fail 3 "destkit $tag was installed and does not run"
native "$PWD" >>"$GITHUB_PATH"
printf 'program=%s\n' "$(native "$PWD/$program")" >>"$GITHUB_OUTPUT"

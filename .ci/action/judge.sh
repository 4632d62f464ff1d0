#!/usr/bin/env bash
# Second step of the action: judges, and leaves the reports, the annotations, the
# summary and the exit status. It ends well whatever the verdict is; the last step
# decides what becomes of the job.
set -euo pipefail

# finish STATUS
finish() {
  printf 'exit-status=%s\n' "$1" >>"$GITHUB_OUTPUT"
  exit 0
}

# refuse MESSAGE: an input is no good, nothing is judged.
refuse() {
  printf '::error title=destkit::%s\n' "$1"
  finish 2
}

# yes INPUT VALUE
yes() {
  case $2 in
    true) return 0 ;;
    false | '') return 1 ;;
    *) refuse "$1 must be true or false" ;;
  esac
}

# variable INPUT NAME: the name must be one, since the shell would run what else
# stands in an index.
variable() {
  [[ $2 =~ ^[A-Za-z_][A-Za-z0-9_]*$ ]] || refuse "$1 must be the name of an environment variable, not its value"
}

# borrow INPUT NAME VARIABLE: hands the value on under the name that destkit knows.
borrow() {
  [[ -n $2 ]] || return 0
  variable "$1" "$2"
  [[ -n ${!2-} ]] || refuse "$1: the environment variable $2 is not set; set it with env: where the action is used"
  export "$3=${!2}"
}

# lines TEXT: the lines that hold something, without the space around them.
lines() {
  local line
  while IFS= read -r line || [[ -n $line ]]; do
    line=${line%$'\r'}
    line=${line#"${line%%[![:space:]]*}"}
    line=${line%"${line##*[![:space:]]}"}
    [[ -z $line ]] || printf '%s\n' "$line"
  done <<<"$1"
}

[[ -n $INPUT_URL ]] || refuse 'url is empty; is the secret or the variable set that it is taken from?'
case $INPUT_FAIL_ON in
  findings | regression | untested) ;;
  *) refuse 'fail-on must be findings, regression or untested' ;;
esac
# What needs a baseline is refused here, and not after minutes of judging.
if yes comment "$INPUT_COMMENT"; then
  [[ -n $INPUT_BASELINE ]] || refuse 'comment needs a baseline to compare with'
fi
[[ $INPUT_FAIL_ON != regression || -n $INPUT_BASELINE ]] || refuse 'fail-on: regression needs a baseline to compare with'

command=(conform)
case $INPUT_SUITE in
  destination) export DESTKIT_URL=$INPUT_URL ;; # it may hold a secret
  service)
    command+=(service)
    [[ -z $INPUT_TOKEN_ENV ]] ||
      refuse 'token-env belongs to the suite destination; for a service name workspace-api-key-env or personal-access-token-env'
    borrow personal-access-token-env "$INPUT_PERSONAL_ACCESS_TOKEN_ENV" DESTKIT_PERSONAL_ACCESS_TOKEN
    borrow workspace-api-key-env "$INPUT_WORKSPACE_API_KEY_ENV" DESTKIT_WORKSPACE_API_KEY
    ;;
  *) refuse 'suite must be destination or service' ;;
esac
[[ -z $INPUT_PROFILE ]] || command+=("--profile=$INPUT_PROFILE")
[[ -z $INPUT_CONFIG ]] || command+=("--config=$INPUT_CONFIG")
[[ -z $INPUT_WAIVERS ]] || command+=("--waivers=$INPUT_WAIVERS")
if [[ -n $INPUT_TOKEN_ENV ]]; then
  variable token-env "$INPUT_TOKEN_ENV"
  command+=("--token-env=$INPUT_TOKEN_ENV")
fi
if yes write "$INPUT_WRITE"; then command+=(--write); fi
if yes require-clean "$INPUT_REQUIRE_CLEAN"; then command+=(--require-clean); fi
if yes require-complete "$INPUT_REQUIRE_COMPLETE"; then command+=(--require-complete); fi
while IFS= read -r object; do
  [[ -z $object ]] || command+=("--object=$object")
done <<<"$(lines "$INPUT_OBJECTS")"
while IFS= read -r argument; do
  [[ -z $argument ]] || command+=("$argument")
done <<<"$(lines "$INPUT_ARGS")"

# file FORMAT: where its report goes. What an earlier step left there is not of
# this run.
dir=${INPUT_REPORT_DIR:-destkit-reports}
[[ $dir != *$'\n'* ]] || refuse 'report-dir must be one line' # it becomes an output
mkdir -p -- "$dir" || refuse 'report-dir cannot be made'
file() {
  case $1 in
    json) echo "$dir/report.json" ;;
    junit) echo "$dir/junit.xml" ;;
    sarif) echo "$dir/destkit.sarif" ;;
    html) echo "$dir/report.html" ;;
    markdown) echo "$dir/report.md" ;;
    text) echo "$dir/report.txt" ;;
    har) echo "$dir/report.har" ;;
    badge) echo "$dir/badge.json" ;;
    github) echo "$dir/annotations.txt" ;;
  esac
}
formats=(json markdown)
if yes annotations "$INPUT_ANNOTATIONS"; then formats+=(github); fi
read -ra wanted <<<"$(tr ',\r\n' '   ' <<<"$INPUT_REPORTS")"
for format in ${wanted[@]+"${wanted[@]}"}; do # an older bash takes an empty list for unset
  [[ $format =~ ^(text|json|junit|html|markdown|sarif|har|badge)$ ]] ||
    refuse 'reports must be words of text, junit, html, markdown, sarif, har and badge'
  [[ " ${formats[*]} " == *" $format "* ]] || formats+=("$format")
done
for format in "${formats[@]}"; do
  rm -f "$(file "$format")"
  command+=("--report=$format=$(file "$format")")
done
if [[ $INPUT_SUITE == service ]]; then command+=(-- "$INPUT_URL"); fi

status=0
"$PROGRAM" "${command[@]}" || status=$?

printf 'report-dir=%s\n' "$dir" >>"$GITHUB_OUTPUT"
for format in "${formats[@]}"; do
  [[ ! -s $(file "$format") ]] || printf '%s=%s\n' "$format" "$(file "$format")" >>"$GITHUB_OUTPUT"
done
if [[ -s $(file github) ]]; then cat "$(file github)"; fi
if [[ -s $(file markdown) ]]; then cat "$(file markdown)" >>"$GITHUB_STEP_SUMMARY"; fi
if [[ -s $(file json) ]] && command -v jq >/dev/null 2>&1; then
  # One line each: a second one would be another output.
  jq -r '("verdict", "tier", "summary") as $name | $name + "=" + (.[$name] // "" | tostring | gsub("[\\r\\n]"; " "))' \
    "$(file json)" >>"$GITHUB_OUTPUT"
fi
finish "$status"

#!/usr/bin/env bash
# Third step of the action: compares the report with the baseline and, on a pull
# request, keeps one comment that says what changed. Nothing that goes wrong with
# the comment changes the verdict.
set -euo pipefail

warn() { printf '::warning title=destkit::%s\n' "$1"; }

if [[ ! -f $INPUT_BASELINE ]]; then
  warn 'the file of the baseline is not there; nothing was compared'
  exit 0
fi
if [[ ! -s $REPORT ]]; then
  warn 'there is no report of this run; nothing was compared'
  exit 0
fi

name=${INPUT_COMMENT_NAME:-${GITHUB_JOB:-}}
diff=$REPORT_DIR/diff.md
status=0
"$PROGRAM" diff --markdown --marker="$name" -- "$INPUT_BASELINE" "$REPORT" >"$diff" || status=$?
case $status in
  0) regressed=false ;;
  1) regressed=true ;;
  *)
    rm -f "$diff"
    warn 'the baseline cannot be compared with this run; see the log'
    exit 0
    ;;
esac
printf 'regressed=%s\ndiff=%s\n' "$regressed" "$diff" >>"$GITHUB_OUTPUT"
cat "$diff" >>"$GITHUB_STEP_SUMMARY"

[[ $INPUT_COMMENT == true ]] || exit 0
case ${GITHUB_EVENT_NAME:-} in
  pull_request | pull_request_target) ;;
  *) exit 0 ;;
esac

# no_comment REASON
no_comment() {
  warn "the comment was not written: $1"
  exit 0
}
command -v jq >/dev/null 2>&1 || no_comment 'jq is not installed'

# query ARGUMENT...: jq without the carriage returns that it writes on Windows.
query() { jq -r "$@" | tr -d '\r'; }
number=$(query '.pull_request.number // empty' "$GITHUB_EVENT_PATH") || number=''
[[ $number =~ ^[0-9]+$ ]] || no_comment 'the event names no pull request'
[[ $COMMENT_TOKEN =~ ^[A-Za-z0-9._~+/=-]+$ ]] || no_comment 'github-token is empty or no token'

work=$(mktemp -d "${RUNNER_TEMP:-/tmp}/destkit-comment.XXXXXX")
trap 'rm -rf "$work"' EXIT

# api METHOD PATH [FILE]: sends a request and prints the status of the answer,
# whose body is in $work/answer. The token goes through a pipe: every process can
# read a command line.
api() {
  local args=(--silent --show-error --proto '=https' --max-time 60 --request "$1"
    --header 'Accept: application/vnd.github+json' --header 'X-GitHub-Api-Version: 2022-11-28'
    --output "$work/answer" --write-out '%{http_code}')
  # A POST that is sent twice would leave two comments.
  if [[ $1 == GET ]]; then args+=(--retry 2); fi
  if [[ $# -gt 2 ]]; then args+=(--header 'Content-Type: application/json' --data-binary "@$3"); fi
  : >"$work/answer"
  printf 'header = "Authorization: Bearer %s"\n' "$COMMENT_TOKEN" |
    curl --config - "${args[@]}" "${GITHUB_API_URL:-https://api.github.com}/repos/$GITHUB_REPOSITORY/$2" || true
}

# refused STATUS
refused() {
  local hint=''
  if [[ $1 == 401 || $1 == 403 || $1 == 404 ]]; then
    hint='; does the job have the permission "pull-requests: write"? Runs of forks have none'
  fi
  no_comment "GitHub answered with status $1$hint"
}

# Only a comment that the same author wrote is taken for the one of the last run:
# anybody can write the marker.
marker=$(head -n 1 "$diff")
id=''
for ((page = 1; page <= 100; page++)); do
  code=$(api GET "issues/$number/comments?per_page=100&page=$page")
  [[ $code == 200 ]] || refused "$code"
  count=$(query 'length' "$work/answer") || no_comment 'the list of comments is not JSON'
  id=$(query --arg marker "$marker" --arg author "$INPUT_COMMENT_AUTHOR" \
    'first(.[] | select(.user.login == $author and ((.body // "") | startswith($marker))) | .id) // empty' "$work/answer") ||
    no_comment 'the list of comments has another form'
  [[ -z $id && $count -ge 100 ]] || break
done

jq -n --rawfile body "$diff" '{body: $body}' >"$work/body"
if [[ -n $id ]]; then
  [[ $id =~ ^[0-9]+$ ]] || no_comment 'the id of the comment is no number'
  code=$(api PATCH "issues/comments/$id" "$work/body")
else
  code=$(api POST "issues/$number/comments" "$work/body")
fi
[[ $code == 200 || $code == 201 ]] || refused "$code"
echo "comment: $(query '.html_url // "written"' "$work/answer")"

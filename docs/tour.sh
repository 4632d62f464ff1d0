#!/usr/bin/env bash
# A walk through every endpoint of the API with curl. It needs a running service
# and a custom destination, for example:
#
#   destkit destsim --preset crm --addr 127.0.0.1:9000 &
#   destkit serve --data ./data                     # prints the two tokens
#   export PAT=pat_… KEY=secret-token:… BASE=http://127.0.0.1:8080/api/v1
#   docs/tour.sh http://127.0.0.1:9000/ customers.csv   # walk, and show what there is
#   docs/tour.sh show                                   # show it again, after a restart
#
# The CSV file needs the columns email and name.
set -euo pipefail
: "${BASE:?the address of the API, as http://127.0.0.1:8080/api/v1}" "${PAT:?a personal access token}" "${KEY:?a workspace API key}"

# call METHOD PATH TOKEN [BODY] prints the exchange; its reply is in $reply.
call() {
  local method=$1 path=$2 token=$3 body=${4-}
  printf '\n$ %s %s %s\n' "$method" "$path" "$body"
  local options=(-sS -X "$method" -H "Authorization: Bearer $token" -w '\n%{http_code}')
  [ -z "$body" ] || options+=(-H 'Content-Type: application/json' -d "$body")
  reply=$(curl "${options[@]}" "$BASE$path")
  local code=${reply##*$'\n'}
  reply=${reply%$'\n'*}
  reply=${reply%$'\n'}
  printf '%s %s\n' "$code" "${reply:0:400}"
  case $code in 2*) ;; *) echo "tour: $method $path answered $code" >&2; exit 1 ;; esac
}

# id is the first id of the last reply.
id() { grep -oE '"(id|sync_id)":[0-9]+' <<<"$reply" | head -n 1 | grep -oE '[0-9]+'; }

show() {
  local path
  for path in /destinations /syncs /sources /datasets; do call GET "$path?order=asc" "$KEY"; done
  for path in /users /workspaces /invitations; do call GET "$path?order=asc" "$PAT"; done
}

if [ "${1-}" = show ]; then show; exit; fi
endpoint=${1:?the URL of a custom destination, or show} file=$(realpath "${2:?a CSV file with email and name}")

# The organization, with a personal access token.
call POST /workspaces "$PAT" '{"name":"Marketing","notification_emails":["ops@example.com"],"return_workspace_api_key":true}'
workspace=$(id)
call POST /invitations "$PAT" "{\"email\":\"new@example.com\",\"role\":\"member\",\"workspaces\":[{\"id\":$workspace,\"role\":\"viewer\"}]}"
call PATCH "/invitations/$(id)" "$PAT" '{"role":"admin"}'
call POST "/workspaces/$workspace/invitations" "$PAT" '{"emails":["guest@example.com"],"role":"viewer"}'
call PUT "/workspaces/$workspace/invitations/$(id)" "$PAT" '{"role":"editor"}'
call GET '/users?per_page=10' "$PAT"

# The destination, with the key of the workspace.
call POST /destinations "$KEY" "{\"service_connection\":{\"name\":\"CRM\",\"type\":\"custom_api\",\"credentials\":{\"api_version\":1,\"webhook_url\":\"$endpoint\"}}}"
destination=$(id)
call GET /destinations "$KEY"
call GET "/destinations/$destination" "$KEY"
call PATCH "/destinations/$destination" "$KEY" '{"service_connection":{"name":"Our CRM"}}'
call GET "/destinations/$destination/objects" "$KEY"
call GET "/destinations/$destination/objects/person" "$KEY"

# Sources, models and topics.
call GET '/source_types?per_page=2' "$KEY"
call POST /sources "$KEY" "{\"connection\":{\"name\":\"Customers\",\"type\":\"csv\",\"credentials\":{\"path\":\"$file\"}}}"
source=$(id)
call POST /sources "$KEY" '{"connection":{"name":"Warehouse","type":"snowflake","credentials":{"account":"xy12345","warehouse":"LOADING","database":"SHOP","user":"reader","password":"p"}}}'
call POST "/sources/$(id)/models" "$KEY" '{"name":"One","query":"SELECT 1 AS one","description":"a model"}'
call POST /sources "$KEY" '{"connection":{"name":"Events","type":"topic_log","credentials":{}}}'
stream=$(id)
call POST "/sources/$stream/topics" "$KEY" '{"name":"clicks","sample_message":{"user":"ada","clicks":1}}'
call PATCH "/sources/$stream/topics/$(id)" "$KEY" '{"description":"one for each click"}'

# A sync, its update, and its runs.
table=$(basename "$file" .csv)
sync="\"operation\":\"upsert\",\"source_attributes\":{\"connection_id\":$source,\"object\":{\"type\":\"table\",\"table_catalog\":\"main\",\"table_schema\":\"main\",\"table_name\":\"$table\"}},\"destination_attributes\":{\"connection_id\":$destination,\"object\":\"person\"},\"mappings\":[{\"from\":{\"type\":\"column\",\"data\":\"email\"},\"to\":\"email\",\"is_primary_identifier\":true},{\"from\":{\"type\":\"column\",\"data\":\"name\"},\"to\":\"last_name\"}]"
call POST /syncs "$KEY" "{$sync}"
id=$(id)
call GET /syncs "$KEY"
call GET "/syncs/$id" "$KEY"
call PATCH "/syncs/$id" "$KEY" "{$sync,\"label\":\"Customers to CRM\"}"
call GET "/syncs/$id/sync_runs" "$KEY"
show

#!/bin/sh
# A first job with curl: make it, see what it means, watch it run. `./dev serve` must be running.
set -eu
url=${FOLIOT_API_URL:-http://127.0.0.1:8700}
key=${FOLIOT_API_KEY:-$(cat "${FOLIOT_DATA_DIR:-.foliot}/admin.key")}
ask() { curl -sS --fail-with-body -H "Authorization: Bearer $key" "$@"; }
field() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }

# It asks Foliot itself how it is, every two seconds, three times.
job=$(ask "$url/api/v1/jobs" --json '{
  "name": "first job", "type": "http", "max_runs": 3,
  "schedule": {"words": "every 2 seconds"},
  "config": {"method": "GET", "url": "'"$url"'/healthz"}
}' | field id)
echo "made job $job"

until [ "$(ask "$url/api/v1/jobs/$job" | field status)" = completed ]; do sleep 1; done

ask "$url/api/v1/jobs/$job/runs" | python3 -c '
import json, sys
for run in json.load(sys.stdin)["items"]:
    print(run["number"], run["planned_for"], run["status"], run["duration_ms"], "ms")
'

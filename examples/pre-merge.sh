#!/bin/sh
# Asks a service whether a model may be merged. Needs curl and nothing else.
#
#   sh pre-merge.sh https://rprime.example request.json
#   sh pre-merge.sh https://rprime.example predictions.csv options.json
#
# request.json is what POST /evaluate takes, with `gates`. Or predictions.csv has the columns
# y_true, y_pred and perhaps y_pred_baseline, and options.json the rest (this needs curl 7.87).
# The report goes to standard output as Markdown.
#
#   RPRIME_KEY       the key of the service, where it asks for one
#   RPRIME_RETRIES   how often to ask again where it is busy or out of reach; default 3
#
# It ends with
#   0  the model may be merged
#   1  it is worse
#   2  the request is wrong
#   3  nothing was decided: too few items to tell, or no rules
#   4  no verdict: the service is out of reach, busy or broken; says nothing of the model
#   5  the gate could not be judged: there is no baseline, the test sets differ, or a value does
#      not exist
set -eu

say() { echo "pre-merge: $*" >&2; }

if [ $# -lt 2 ] || [ $# -gt 3 ]; then
    say "usage: pre-merge.sh URL request.json | URL predictions.csv options.json"
    exit 2
fi
url=${1%/}/v1/evaluate
file=$2
options=${3:-}
for path in "$file" ${options:+"$options"}; do
    [ -r "$path" ] || { say "cannot read $path"; exit 2; }
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 4' HUP INT TERM

case $file in
    *.csv) type=text/csv ;;
    *) type=application/json ;;
esac
# In a file, since the arguments of a program can be seen by everybody on the machine. All
# attempts have one Idempotency-Key, so nothing is counted twice.
{
    echo "Content-Type: $type"
    echo "Accept: text/markdown"
    echo "Idempotency-Key: pre-merge-$(date +%s)-$$-$(cksum <"$file" | tr ' ' -)"
    [ -z "${RPRIME_KEY:-}" ] || echo "Authorization: Bearer $RPRIME_KEY"
} >"$folder/headers"

set -- --silent --show-error --connect-timeout 5 --max-time 60 \
    --retry "${RPRIME_RETRIES:-3}" --retry-connrefused \
    --header "@$folder/headers" --data-binary "@$file" \
    --dump-header "$folder/head" --output "$folder/answer" --write-out '%{http_code}'
[ -z "$options" ] || set -- "$@" --url-query "request@$options"

if ! status=$(curl "$@" "$url"); then
    say "NO VERDICT: the service gives no answer"
    exit 4
fi
case $status in
    2??) ;;
    408 | 429 | 5??)
        say "NO VERDICT: the service answers $status"
        exit 4
        ;;
    *)
        say "the service refuses the request with $status:"
        cat "$folder/answer" >&2
        echo >&2
        exit 2
        ;;
esac

cat "$folder/answer"
verdict=$(tr -d '\r' <"$folder/head" | sed -n 's/^[Ee]valuation-[Vv]erdict: *//p' | tail -n 1)
case $verdict in
    pass) exit 0 ;;
    fail)
        # So say the headline of the Markdown above.
        if grep -q '^## .*could not be judged' "$folder/answer"; then
            say "the gate fails, but could not be judged"
            exit 5
        fi
        say "the model is worse"
        exit 1
        ;;
    no_baseline) say "the gate could not be judged: there is no baseline"; exit 5 ;;
    inconclusive | no_rules) say "$verdict: this is no pass"; exit 3 ;;
    '')
        if grep -qi '^content-type: text/markdown' "$folder/head"; then
            say "the request has no gates: this is no pass"
            exit 3
        fi
        say "NO VERDICT: no such service answers at $url"
        exit 4
        ;;
    *) say "NO VERDICT: $verdict is not known here"; exit 4 ;;
esac

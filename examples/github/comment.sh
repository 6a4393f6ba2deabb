#!/bin/sh
# Puts a report into a pull request, as one comment that every run brings up to date.
#
#   rprime evaluate predictions.csv --gates gates.yaml --markdown rprime.md
#   sh comment.sh rprime.md 7
#
# 7 is the number of the pull request. The report begins with a hidden line that names project and
# model, by which its comment is found again, so two models have two comments. Needs curl and jq,
# which the runners of GitHub have, and
#   GITHUB_TOKEN       with the permission `pull-requests: write`
#   GITHUB_REPOSITORY  and GITHUB_API_URL, which GitHub sets
set -eu

say() { echo "comment: $*" >&2; }

if [ $# -ne 2 ]; then
    say "usage: comment.sh rprime.md NUMBER"
    exit 2
fi
report=$1
repository=${GITHUB_API_URL:-https://api.github.com}/repos/$GITHUB_REPOSITORY
marker=$(head -n 1 "$report")
case $marker in
    '<!-- rprime:report '*' -->') ;;
    *) say "$report is not what rprime --markdown writes"; exit 2 ;;
esac

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# In a file, since the arguments of a program can be seen by everybody on the machine.
{
    echo "Authorization: Bearer $GITHUB_TOKEN"
    echo "Accept: application/vnd.github+json"
    echo "Content-Type: application/json"
} >"$folder/headers"
ask() {
    curl --silent --show-error --fail --retry 3 --max-time 30 --header "@$folder/headers" "$@"
}

number=$2
page=1
comment=
while [ -z "$comment" ]; do
    ask "$repository/issues/$number/comments?per_page=100&page=$page" >"$folder/comments"
    comment=$(jq --raw-output --arg marker "$marker" \
        'map(select(.body | startswith($marker)))[0].id // empty' "$folder/comments")
    [ "$(jq length "$folder/comments")" -eq 100 ] || break
    page=$((page + 1))
done

jq --null-input --rawfile body "$report" '{body: $body}' >"$folder/body"
if [ -n "$comment" ]; then
    set -- --request PATCH "$repository/issues/comments/$comment"
else
    set -- --request POST "$repository/issues/$number/comments"
fi
ask --data-binary "@$folder/body" --output "$folder/answer" "$@"
say "$(jq --raw-output .html_url "$folder/answer")"

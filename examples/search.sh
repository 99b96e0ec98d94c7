# Prints the passages that share the most words with a query, as one line of JSON: bash search.sh QUERY K
grep -oE '[[:alpha:]]{4,}' <<< "$1" | sort -fu |
  while read -r word; do
    grep -iwF -- "$word" handbook/corpus.jsonl | cut -d '"' -f 4
  done |
  sort | uniq -c | sort -k 1,1nr -k 2 | head -n "$2" |
  awk 'BEGIN { printf "[" } { printf "%s[\"%s\", %d]", comma, $2, $1; comma = ", " } END { print "]" }'

#!/usr/bin/env bash
# Output, JSON keys, documentation and names use the terms of docs/commands. This finds terms that were replaced, and
# habits of comments that readers have to decode; each line below is an extended regular expression.
cd "$(dirname "$0")/.." || exit 1

terms='users_at_ns
covered_peak
places_at_peak
held_until_replaced
saving_bytes
peak_without
"total_bytes_allocated"
"live_allocated_bytes"
Oom(Holder|Change|Remedy|Stop)
LeakPlace
\bMapPiece\b
MeasuredMoment
LedgerMoment
Device(Users|User)\b
SampledUser
ListedUser
NamedUser
UserKind
by whom
"whose"
want of memory
would have let it pass
was in the way
in so many pieces
the largest of them
outside the largest
pins alone
the next step.s are there
larger than it had to be
is none of
not to be had
no driver of one
left to right is not time
believable\(
driver.s word'

# In comments of these folders; write "nullopt if ...", "empty if ...", "unknown", and repeat the noun.
habits='//.*\bnone (where|when)\b
//.*\b([Ee]mpty|[Nn]ull|[Nn]othing) where\b
//.*\bwhere (it|that|there|they|none|nothing) (is|are)\b
//.*\b[Ll]ikewise\b
//.*\bin vain\b
//.*\banew\b
//.*\b(is|are|was|were) told\b
//[/!<]* (That|Those|Whose) '
clean=(include src/{allocator,analyze,base,batching,cli,dp_sgd,export,import,loading,model,plan,query,report,simulate}
  src/{store,sweep,trace,tui} tests/unit/{allocator,analyze,base,batching,cli,cpp_api,export,import,loading,model,plan}
  tests/unit/{query,report,simulate,store,sweep,trace,tui})

found=0
while IFS= read -r term; do
  if git grep -nE -e "$term" -- src include docs README.md tests/golden scripts ':!scripts/check_words.sh'; then
    echo "replaced term: $term" >&2
    found=1
  fi
done <<<"$terms"
while IFS= read -r habit; do
  if git grep -nE -e "$habit" -- "${clean[@]}"; then
    echo "comment to reword: $habit" >&2
    found=1
  fi
done <<<"$habits"
exit "$found"

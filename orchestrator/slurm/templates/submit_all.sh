
usage() {
  printf 'usage: ./submit_all.sh [--dry-run] [--chain afterok|afterany]\n'
  printf '  --dry-run   print what would be submitted\n'
  printf '  --chain     each run starts after the one before it: only if that succeeded (afterok), or in any case\n'
}
stop() {
  printf 'submit_all.sh: %s\n' "$1" >&2
  exit "${2:-1}"
}

dry_run=''
chain=''
while (($# > 0)); do
  case $1 in
  --dry-run) dry_run=yes ;;
  --chain)
    chain="${2:-}"
    shift
    ;;
  --chain=*)
    chain="${1#--chain=}"
    [[ -n $chain ]] || stop '--chain: expected afterok or afterany' 2
    ;;
  -h | --help)
    usage
    exit 0
    ;;
  *)
    usage >&2
    stop "no such option: $1" 2
    ;;
  esac
  case $chain in '' | afterok | afterany) ;; *) stop "--chain: expected afterok or afterany, got '$chain'" 2 ;; esac
  shift || stop '--chain: expected afterok or afterany' 2
done

cd -- "$(dirname -- "${BASH_SOURCE[0]}")" || stop 'cannot enter its own directory'
if [[ -z $dry_run ]]; then
  command -v sbatch >/dev/null || stop 'there is no sbatch here: run this on a login node of the cluster'
  touch submitted.tsv || stop 'cannot write submitted.tsv'
  exec 9>>submitted.tsv
  if command -v flock >/dev/null; then
    flock -n 9 || stop 'another submit_all.sh is at work here'
  fi
fi

# The id under which a run was submitted; nothing if it was not. A line that was cut short is none.
id_of() { if [[ -e submitted.tsv ]]; then awk -F '\t' -v run="$1" 'NF == 3 && $1 == run { id = $2 } END { print id }' submitted.tsv; fi; }

before='' # the job that the next one waits for
submitted=0
skipped=0
for run in "${runs[@]}"; do
  id="$(id_of "$run")"
  if [[ -n $id ]]; then
    printf '%s: submitted already, job %s\n' "$run" "$id"
    skipped=$((skipped + 1))
    before="$id"
    continue
  fi
  order=(sbatch --parsable)
  if [[ -n $chain && -n $before ]]; then order+=("--dependency=$chain:$before,singleton"); fi
  order+=(run.slurm)
  if [[ -n $dry_run ]]; then
    printf '(cd %s && %s)\n' "$run" "${order[*]}"
    before="<job of $run>"
    continue
  fi
  answer="$(cd -- "$run" && "${order[@]}" 9>&-)" ||
    stop "$run was not submitted, nor those after it. Mend the cause and run this again: what submitted.tsv lists is skipped"
  id="${answer%%;*}" # on a federation: id;cluster
  [[ $id =~ ^[0-9]+$ ]] || stop "$run: expected a job id from sbatch, got '$answer'"
  printf '%s\t%s\t%s\n' "$run" "$id" "$(date -u '+%FT%TZ')" >&9 ||
    stop "$run is job $id, but submitted.tsv cannot be written: add the line by hand"
  printf '%s: job %s\n' "$run" "$id"
  submitted=$((submitted + 1))
  before="$id"
done

if [[ -z $dry_run ]]; then
  # shellcheck disable=SC2016 # for the reader
  printf '%s submitted, %s skipped. Watch them with: squeue -u "$USER"\n' "$submitted" "$skipped"
fi

# shellcheck shell=sh disable=SC1007,SC2154  # phantom_run.cpp writes name, total, capability, count and uuids before it
query= format= only=
while [ $# -gt 0 ]; do
  case $1 in
    --query-gpu=*) query=${1#*=} ;;
    --query-gpu) query=$2; shift ;;
    --format=*) format=${1#*=} ;;
    --format) format=$2; shift ;;
    --id=*) only=${1#*=} ;;
    -i | --id) only=$2; shift ;;
  esac
  shift
done

answer() { # FIELD NUMBER UUID
  case $1 in
    index) echo "$2" ;;
    uuid | gpu_uuid) echo "$3" ;;
    name | gpu_name) echo "$name" ;;
    count) echo "$count" ;;
    compute_cap) echo "$capability" ;;
    driver_version) echo '0.0 (phantom GPU)' ;;
    memory.total | memory.free) echo "$total$mib" ;;
    memory.used | memory.reserved) echo "0$mib" ;;
    utilization.gpu | utilization.memory) echo "0$percent" ;;
    *) echo '[N/A]' ;;
  esac
}

case $format in *nounits*) mib= percent= ;; *) mib=' MiB' percent=' %' ;; esac
case $query:$format in
  :* | *noheader*) ;;
  *) echo "$query" | sed 's/,/, /g' ;;
esac
number=0
for uuid in $uuids; do
  case $only in
    '' | "$number" | "$uuid")
      line="GPU $number: $name (UUID: $uuid)"
      [ -z "$query" ] || line=
      for field in $(echo "$query" | tr ',' ' '); do line="$line${line:+, }$(answer "$field" "$number" "$uuid")"; done
      echo "$line"
      ;;
  esac
  number=$((number + 1))
done

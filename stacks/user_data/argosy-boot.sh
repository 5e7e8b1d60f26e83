#!/bin/bash
# Argosy's runner as the init of this instance's containers, and what the console says of a boot.
#
#   argosy-boot store GIB                   argosy-runner.service, first
#   argosy-boot install URL REGION SHA256   argosy-runner.service, before docker.service and ecs.service
#   argosy-boot undo                        docker.service, whenever it has ended (ExecStopPost)
#   argosy-boot attributes                  ecs.service, between Docker's start and the agent's (ExecStartPre)
#   argosy-boot watch                       argosy-watch.service, after ecs.service
#   argosy-boot xids NUMBER...              argosy-xids.service, with GPUs: errors that concern the whole instance
#
# Nothing here waits for a job of systemd, so it cannot matter whether Docker starts before or after cloud-init's end.
set -euo pipefail
folder=${ARGOSY_FOLDER:-/opt/argosy} daemon=${ARGOSY_DAEMON:-/etc/docker/daemon.json} config=/etc/ecs/ecs.config
disks=${ARGOSY_DISKS:-/sys/block} devices=${ARGOSY_DEVICES:-/dev}
metadata=${ARGOSY_METADATA:-http://169.254.169.254/latest}
runner=$folder/argosy-runner
no_body=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 # SHA-256 of nothing

# EC2 shows the console as GetConsoleOutput, also of an instance without a login.
say() { echo "argosy boot: $*" | tee -a "${ARGOSY_CONSOLE:-/dev/console}" || true; }

ask() { curl --silent --show-error --fail --noproxy '*' --max-time 5 "$@"; }

field() { sed -n "s/.*\"$1\" *: *\"\([^\"]*\)\".*/\1/p"; }

is_right() { echo "$sha256  $1" | sha256sum --check --status 2>/dev/null; }

# A call of AWS with the keys of the instance's role: SERVICE REGION, and arguments of curl. curl gets the keys by
# standard input: no list of processes shows them.
signed() {
  local token role keys roles=$metadata/meta-data/iam/security-credentials/
  token=$(ask --request PUT --header 'X-aws-ec2-metadata-token-ttl-seconds: 300' "$metadata/api/token") || return
  role=$(ask --header "X-aws-ec2-metadata-token: $token" "$roles") || return
  keys=$(ask --header "X-aws-ec2-metadata-token: $token" "$roles$role") || return
  printf 'user = "%s:%s"\nheader = "x-amz-security-token: %s"\n' \
    "$(field AccessKeyId <<<"$keys")" "$(field SecretAccessKey <<<"$keys")" "$(field Token <<<"$keys")" |
    curl --silent --show-error --fail --max-time 60 --config - --aws-sigv4 "aws:amz:$2:$1" "${@:3}"
}

fetch() {
  signed s3 "$region" --header "x-amz-content-sha256: $no_body" --output "$runner.part" "$url" || return
  is_right "$runner.part"
}

# A setting of Docker; with an empty value Docker's own. What an owner's image has set besides stays.
set_docker() {
  mkdir -p "${daemon%/*}"
  python3 -c '
import json, os, sys
path, name, value = sys.argv[1:]
settings = json.load(open(path)) if os.path.exists(path) and os.path.getsize(path) else {}
settings.pop(name, None)
if value:
    settings[name] = value
json.dump(settings, open(path + ".part", "w"), indent=2)
os.replace(path + ".part", path)
' "$daemon" "$1" "$2"
}

init_now() { timeout 10 docker info --format '{{.InitBinary}}' || true; }

give_up() {
  trap - TERM
  say "no runner, so this instance takes no runs with a program of their own: $1"
  rm -f "$runner" "$runner.part"
  if [ -s "$daemon" ] && grep -q "$runner" "$daemon"; then set_docker init-path ""; fi
  exit 1
}

# Images, and what tasks write into their containers, go to the first disk of the machine itself, unless that is smaller
# than the volume: tasks have been promised the volume's room.
store() {
  local disk gib problem
  for disk in "$disks"/nvme*; do
    grep --quiet --no-messages 'EC2 NVMe Instance Storage' "$disk/device/model" || continue
    gib=$(($(<"$disk/size") / 2097152)) # from sectors of 512 bytes
    if [ "$gib" -lt "$1" ]; then
      say "the instance storage of $gib GiB is not used: the volume has $1 GiB"
    elif problem=$(keep_on "$devices/${disk##*/}" 2>&1); then
      say "images are on the instance storage of $gib GiB"
    else
      say "the instance storage of $gib GiB is not used: $problem"
    fi
    return
  done
}

# It survives a reboot. A disk that holds anything else belongs to the owner of the image.
keep_on() {
  local place=$folder/store
  if grep --quiet --no-messages data-root "$daemon" && ! grep --quiet "$place" "$daemon"; then
    echo "Docker has a data-root already"
    return 1
  fi
  if [ "$(blkid -s LABEL -o value "$1")" != argosy-store ]; then
    if [ -n "$(blkid -o value "$1")" ]; then
      echo "something else is on it"
      return 1
    fi
    mkfs.xfs -q -K -L argosy-store "$1" || return # without discarding the blocks, which takes minutes
  fi
  mkdir -p "$place" || return
  mountpoint --quiet "$place" || mount -o noatime "$1" "$place" || return
  set_docker data-root "$place/docker"
}

install() {
  url=$1 region=$2 sha256=$3
  trap 'give_up "its installation took too long"' TERM # argosy-runner.service says how long
  mkdir -p "$folder"
  if ! is_right "$runner"; then
    for wait in 1 2 4 8 16 0; do # the role's first keys may be a moment late
      if problem=$(fetch 2>&1); then break; fi
      [ "$wait" != 0 ] || give_up "it could not be fetched: ${problem:-not the file that was deployed}"
      sleep "$wait"
    done
    chmod 755 "$runner.part"
    mv "$runner.part" "$runner"
  fi
  [ "$("$runner" --version 2>&1)" = "argosy-runner protocol 1" ] || give_up "it does not run on this machine"
  set_docker init-path "$runner" || give_up "$daemon cannot be read"
  say "the runner is in place"
  # Docker starts after this. One that was quicker is restarted, and the agent, which starts after both, waits for it.
  if systemctl is-active --quiet docker && [ "$(init_now)" != "$runner" ]; then
    say "Docker was up before the runner and is restarted"
    systemctl restart --no-block docker
  fi
}

# A Docker that has not run with the runner yet, and fails, is started again without it, and on the volume.
undo() {
  if [ "${SERVICE_RESULT:-success}" != success ] && [ ! -e "$folder/proven" ]; then
    if grep --quiet --no-messages "$folder/store" "$daemon"; then set_docker data-root ""; fi
    give_up "Docker does not start with it ($SERVICE_RESULT)"
  fi
}

# The two lines of `attributes` are for an agent with the runner, and without.
attributes() {
  local found line
  found=$(init_now)
  if [ "$found" = "$runner" ]; then
    line=1
    touch "$folder/proven"
    say "the agent starts; containers have the runner as their init"
  else
    line=2
    say "the agent starts without the runner; Docker's init is ${found:-not known}"
  fi
  sed -i '/^ECS_INSTANCE_ATTRIBUTES=/d' "$config"
  sed -n "${line}p" "$folder/attributes" >>"$config"
}

watch() {
  local joined
  for _ in {1..36}; do
    joined=$(ask http://127.0.0.1:51678/v1/metadata 2>/dev/null | field ContainerInstanceArn) || true
    if [ -n "$joined" ]; then
      say "the agent has joined as $joined"
      return
    fi
    sleep 5
  done
  say "the agent has not joined in three minutes; docker: $(systemctl is-active docker), ecs: $(systemctl is-active ecs); its last errors:"
  grep -E 'level=(warn|error|critical)' /var/log/ecs/ecs-agent.log | tail -n 5 | while read -r line; do say "$line"; done
}

# An error that an application causes is not among the numbers, so it cannot hide one that stays until a reset.
xids() {
  local line number
  journalctl --dmesg --follow --lines all --output cat | while read -r line; do
    number=$(sed -n 's/.*NVRM: Xid ([^)]*): \([0-9]\{1,4\}\).*/\1/p' <<<"$line")
    case " $* " in *" ${number:-none} "*) ;; *) continue ;; esac
    say "$line"
    until problem=$(tell_xid "$number" 2>&1); do
      say "ECS has not taken it: $problem"
      sleep 5
    done
  done
}

# It becomes an attribute of the container instance, which the controller reads.
tell_xid() {
  local known arn cluster region attribute
  known=$(ask "${ARGOSY_AGENT:-http://127.0.0.1:51678}/v1/metadata") || return
  arn=$(field ContainerInstanceArn <<<"$known") cluster=$(field Cluster <<<"$known") region=$(cut -d: -f4 <<<"$arn")
  attribute=$(printf '{"name":"argosy.xid","value":"%s","targetId":"%s"}' "$1" "$arn")
  signed ecs "$region" --output /dev/null --header "Content-Type: application/x-amz-json-1.1" \
    --header "X-Amz-Target: AmazonEC2ContainerServiceV20141113.PutAttributes" \
    --data "{\"cluster\":\"$cluster\",\"attributes\":[$attribute]}" "${ARGOSY_ECS:-https://ecs.$region.amazonaws.com}/"
}

"$@"

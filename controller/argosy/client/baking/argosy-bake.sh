# The work of an instance that becomes an AMI: pull an image, remove what belongs to this instance alone, and stop.
#
#   IMAGE=... bash argosy-bake.sh
#
# The caller reads the console (GetConsoleOutput) and makes the AMI only if the line "holds IMAGE as DIGEST" is there.
set -euo pipefail
root=${ARGOSY_ROOT:-} metadata=${ARGOSY_METADATA:-http://169.254.169.254/latest}
export DOCKER_CONFIG=$root/run/argosy-docker # in memory, so that the AMI holds no token

say() { echo "argosy bake: $*" >>"${ARGOSY_CONSOLE:-/dev/console}"; }

# The pause is for the caller, who reads the console while the instance still runs.
stop() {
  trap - ERR
  sleep 60
  shutdown -h now
  exit
}

fail() {
  say "failed: ${*//$'\n'/ }"
  stop
}

ask() { curl --silent --show-error --fail --noproxy '*' --max-time 5 "$@"; }

field() { sed -n "s/.*\"$1\" *: *\"\([^\"]*\)\".*/\1/p"; }

# ECR's token is "AWS:PASSWORD" in base64, which is what Docker keeps for a registry. curl gets the keys by standard
# input: no list of processes shows them.
log_in() {
  local place=${1#*.dkr.ecr.} token role keys answer roles=$metadata/meta-data/iam/security-credentials/
  token=$(ask --request PUT --header 'X-aws-ec2-metadata-token-ttl-seconds: 300' "$metadata/api/token") || return
  role=$(ask --header "X-aws-ec2-metadata-token: $token" "$roles") || return
  keys=$(ask --header "X-aws-ec2-metadata-token: $token" "$roles$role") || return
  answer=$(printf 'user = "%s:%s"\nheader = "x-amz-security-token: %s"\n' \
    "$(field AccessKeyId <<<"$keys")" "$(field SecretAccessKey <<<"$keys")" "$(field Token <<<"$keys")" |
    curl --silent --show-error --fail --max-time 60 --config - --aws-sigv4 "aws:amz:${place%%.*}:ecr" \
      --header 'Content-Type: application/x-amz-json-1.1' --data '{}' \
      --header 'X-Amz-Target: AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken' \
      "${ARGOSY_ECR:-https://api.ecr.$place/}") || return
  mkdir -p "$DOCKER_CONFIG"
  printf '{"auths":{"%s":{"auth":"%s"}}}' "$1" "$(field authorizationToken <<<"$answer")" >"$DOCKER_CONFIG/config.json"
}

pull() {
  case ${IMAGE%%/*} in *.dkr.ecr.*) log_in "${IMAGE%%/*}" || return ;; esac
  docker pull --quiet "$IMAGE"
}

trap 'fail "$BASH_COMMAND"' ERR
for wait in 10 30 0; do # the role's first keys may be a moment late
  if problem=$(pull 2>&1); then break; fi
  [ "$wait" != 0 ] || fail "$problem"
  sleep "$wait"
done
digest=$(docker image inspect --format '{{index .RepoDigests 0}}' "$IMAGE")
# A registry gives an image of one architecture to every machine.
is=$(docker image inspect --format '{{.Architecture}}' "$IMAGE") runs=$(docker version --format '{{.Server.Arch}}')
[ "$is" = "$runs" ] || fail "$IMAGE is for $is, and this instance is $runs"
# Without a data-root of the AMI's own, types with NVMe disks keep images there and not on the volume.
python3 - "$root/etc/docker/daemon.json" <<'END'
import json, os, sys
path = sys.argv[1]
settings = json.load(open(path)) if os.path.exists(path) and os.path.getsize(path) else {}
settings.setdefault("data-root", "/var/lib/docker")
os.makedirs(os.path.dirname(path), exist_ok=True)
json.dump(settings, open(path, "w"), indent=2)
END
timeout 300 cloud-init status --wait >/dev/null || true # it writes what is removed here
# As the scripts that make AWS's own AMI do: https://github.com/aws/amazon-ecs-ami/blob/main/scripts/cleanup.sh
rm -rf "$root"/var/lib/cloud/* "$root"/var/lib/ecs/data/* "$root"/var/log/ecs/* "$root"/var/log/cloud-init*.log \
  "$root"/var/log/journal/* "$root"/etc/ssh/ssh_host_*
: >"$root/etc/machine-id"
sync
say "holds $IMAGE as ${digest##*@}"
stop

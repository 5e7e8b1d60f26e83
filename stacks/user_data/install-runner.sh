#!/bin/bash
# Makes Argosy's runner the init of this instance's containers:  argosy-install-runner URL REGION SHA256
#
# Ends with 0 if Docker says that it uses it. Otherwise everything is as it was before, and the instance works without:
# its containers have Docker's own init. ecs.service starts after the boot script, so no container is running yet.
set -euo pipefail
url=$1 region=$2 sha256=$3
folder=${ARGOSY_FOLDER:-/opt/argosy} daemon=${ARGOSY_DAEMON:-/etc/docker/daemon.json}
metadata=${ARGOSY_METADATA:-http://169.254.169.254/latest}
runner=$folder/argosy-runner
no_body=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 # SHA-256 of nothing

ask() { curl --silent --show-error --fail --noproxy '*' --max-time 5 "$@"; }

field() { sed -n "s/.*\"$1\" *: *\"\([^\"]*\)\".*/\1/p"; }

# curl gets the keys by standard input: no list of processes shows them.
fetch() {
  local token role keys roles=$metadata/meta-data/iam/security-credentials/
  token=$(ask --request PUT --header 'X-aws-ec2-metadata-token-ttl-seconds: 300' "$metadata/api/token") || return
  role=$(ask --header "X-aws-ec2-metadata-token: $token" "$roles") || return
  keys=$(ask --header "X-aws-ec2-metadata-token: $token" "$roles$role") || return
  printf 'user = "%s:%s"\nheader = "x-amz-security-token: %s"\n' \
    "$(field AccessKeyId <<<"$keys")" "$(field SecretAccessKey <<<"$keys")" "$(field Token <<<"$keys")" |
    curl --silent --show-error --fail --max-time 60 --config - --aws-sigv4 "aws:amz:$region:s3" \
      --header "x-amz-content-sha256: $no_body" --output "$runner.part" "$url" || return
  echo "$sha256  $runner.part" | sha256sum --check --status
}

# What an owner's image has set already stays.
configure() {
  mkdir -p "$(dirname "$daemon")"
  if [ -s "$daemon" ]; then
    cp "$daemon" "$daemon.before-argosy"
    python3 -c '
import json, sys
path, runner = sys.argv[1:]
settings = json.load(open(path))
settings["init-path"] = runner
json.dump(settings, open(path, "w"), indent=2)
' "$daemon" "$runner"
  else
    printf '{"init-path": "%s"}\n' "$runner" >"$daemon"
  fi
}

is_used() { [ "$(timeout 30 docker info --format '{{.InitBinary}}')" = "$runner" ]; }

undo() {
  echo "argosy: the runner could not be installed; this instance takes no runs that bring their own program" >&2
  rm -f "$runner" "$runner.part"
  [ -n "${configured:-}" ] || exit 1
  if [ -e "$daemon.before-argosy" ]; then mv "$daemon.before-argosy" "$daemon"; else rm -f "$daemon"; fi
  systemctl reset-failed docker || true # systemd starts it no more than three times a minute
  timeout 90 systemctl restart docker || true
  exit 1
}
trap undo EXIT

mkdir -p "$folder"
for wait in 1 2 4 8 16 0; do # the role's first keys may be a moment late
  if fetch; then break; fi
  [ "$wait" != 0 ] || exit 1
  sleep "$wait"
done
chmod 755 "$runner.part"
mv "$runner.part" "$runner"
[ "$("$runner" --version)" = "argosy-runner protocol 1" ]
configured=yes
configure
timeout 90 systemctl restart docker
is_used
rm -f "$daemon.before-argosy"
trap - EXIT

#!/bin/bash
# What may the tasks of this instance not reach? The instance's credentials, and the ECS agent's own ports.
#
# Everything is dropped by destination, whatever bridge a task is on. The instance itself is not concerned: what it sends
# passes OUTPUT, and PREROUTING only on its way over lo. The raw table comes before Docker's rules and before the agent's
# translation of 169.254.170.2:80, a task's own credentials, to port 51679; so these stay reachable by that address only.
set -euo pipefail

allow_nothing_to() { # iptables|ip6tables, address of the instance metadata service
  local tables=("$1" --wait --table raw)
  "${tables[@]}" --new-chain ARGOSY 2>/dev/null || "${tables[@]}" --flush ARGOSY
  "${tables[@]}" --append ARGOSY --destination "$2" --jump DROP
  # 51678 lists the tasks of the instance, 51679 hands out credentials by path, 51680 serves Prometheus.
  "${tables[@]}" --append ARGOSY --match addrtype --dst-type LOCAL --protocol tcp --dport 51678:51680 --jump DROP
  "${tables[@]}" --check PREROUTING ! --in-interface lo --jump ARGOSY 2>/dev/null ||
    "${tables[@]}" --insert PREROUTING ! --in-interface lo --jump ARGOSY
}

allow_nothing_to iptables 169.254.169.254/32
allow_nothing_to ip6tables fd00:ec2::254/128

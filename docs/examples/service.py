"""Two copies of a program that runs until it is deleted; one that ends is started again."""

import argosy

echo = {
    "version": 1,
    "kind": "service",
    "name": "echo",
    "run": "echo serving; exec sleep 100000",
    "result": "none",
    "resources": {"vcpus": 0.25, "memory": 128},
    "service": {"desired": 2, "update": {"healthySeconds": 1}},
}

environments = argosy.Client().environments
environments.create(echo)
environments.deploy("echo", wait=True, timeout=300)
print("healthy:", environments.show("echo").healthy)
environments.scale("echo", 1)
environments.delete("echo")

module argosy/runner

go 1.25

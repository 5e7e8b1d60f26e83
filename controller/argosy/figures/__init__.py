"""Pages of a run, the cluster, the market and a plan. Pure: from the api's replies to HTML."""

"""How do a run, the cluster, the market and a plan look as a page? Pure: from the api's replies to HTML."""

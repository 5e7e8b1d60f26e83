"""What the owner of a trial's deployment does: deploy, close a cell, tear down."""

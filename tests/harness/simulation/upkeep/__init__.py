"""What happens to the deployment as a whole: it is deployed again, loses a cell or a document, and is torn down."""

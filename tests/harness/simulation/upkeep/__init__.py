"""Changes of the whole deployment: it is deployed again, loses a cell or a document, and is torn down."""

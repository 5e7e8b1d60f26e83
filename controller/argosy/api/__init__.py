"""Everything that the api function does. Entry: `actions.Api.handle`."""

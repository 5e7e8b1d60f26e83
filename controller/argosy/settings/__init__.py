"""The owner's choices for a deployment, validated once. Entry: `settings.load_settings`."""

"""How is this deployment set up? The owner's choices, validated once. Entry: `settings.load_settings`."""

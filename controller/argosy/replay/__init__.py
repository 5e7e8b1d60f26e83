"""What did the controller know, and decide, at a moment that is over?"""

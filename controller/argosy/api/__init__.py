"""What may users ask for, and what are they answered? Everything that the api function does.

Entry: `actions.Api.handle`, with one method per action. `requests` says what a request looks like, `admission` whether
a run is accepted; the other modules read the state and make the replies.
"""

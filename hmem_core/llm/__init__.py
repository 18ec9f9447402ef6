"""Language models: what is asked of them, and what may be believed of their replies.

Programs that ask are run by `driver` (in an event loop) or `threads` (for code that blocks). A question goes
through `flights` (not twice at once), `client` (cache, deadline, attempts, one repair), `gate` (who may send
now), `dialect` (what the server understands) and `transport` (HTTP); `retry` says what may pass,
`ledger` what was spent. `batcher` embeds texts for all programs at once.

A reply is read tolerantly (`loose`: where in the text the JSON is, and what it says), bent to the type
that was asked for where only one meaning is possible (`fitting`), and then validated strictly
(`replies`). `schemas` states the type to the server; `prompts` holds one file for each prompt.
"""

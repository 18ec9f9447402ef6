"""Language models: what is asked of them, and what may be believed of their replies.

A reply is read tolerantly (`loose`: where in the text the JSON is, and what it says), bent to the type
that was asked for where only one meaning is possible (`fitting`), and then validated strictly
(`replies`). `schemas` states the type to the server; `prompts` holds one file for each prompt.
"""

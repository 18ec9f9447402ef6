"""What is asked of a model: one module for each prompt.

A module has a `PROMPT` (name, version, system message, type of the reply) and a function `ask` that
renders typed records into an `Ask`. The system message is the same for every call, so that servers can
reuse what they computed for it; what varies stands in the one user message, and within it, what several
calls share comes first.

Stored text is data. It appears only inside JSON strings, one record a line, and `rendering` sees to it
that nothing in it ends a string, a line or a message. Change a prompt in any way and its version goes up.
"""

"""The pages: templates, a stylesheet, a script, and the module that renders them."""

"""What a report says, section by section, in blocks that a page and Markdown are both made of."""

"""Word files (.docx) as Markdown: headings, lists with their numbers, tables, notes."""

"""Template, style and script of the page that ``eatss report`` makes."""

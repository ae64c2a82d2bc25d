"""The only code that imports torch: it runs a snippet's compilation and says, as events, what every stage did."""

"""Every private torch hook of the product, and nothing else: written for torch 2.13. One file for each part of torch."""

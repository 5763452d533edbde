"""The client for asyncio. `foliot.sdk.synchronous` is made from these files by ./dev format."""

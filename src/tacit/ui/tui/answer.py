"""What the model says, as Markdown. Apart, because its imports come behind the first frame."""

from textual.widgets import Markdown

from tacit.base.display import plain
from tacit.ui.tui.widgets import Notice


class Answer(Markdown):
    """What the model says, as Markdown, while it arrives."""

    def __init__(self, text: str = "") -> None:
        super().__init__(plain(text), open_links=False, classes="answer")
        self._stream = Markdown.get_stream(self)

    async def add(self, delta: str) -> None:
        await self._stream.write(plain(delta))

    async def finish(self) -> None:
        await self._stream.stop()

    def on_markdown_link_clicked(self, event: Markdown.LinkClicked) -> None:
        """Show where a link leads; the model wrote it, so nothing is opened."""
        event.prevent_default()
        notice = Notice(f"the link leads to {plain(event.href)}")
        self.screen.query_one("#conversation").mount(notice, after=self)

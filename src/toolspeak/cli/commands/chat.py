"""`toolspeak chat`: a conversation, turn by turn, kept on disk."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...errors import ToolspeakError, UsageError
from ...schema.phrases import number_of
from ...schema.suggestions import did_you_mean, near
from ..exit_codes import code_of
from ..options import (
    Command,
    approve_option,
    image_option,
    limits_of,
    limits_options,
    model_by_name,
    model_of_saved,
    model_option,
    policy_option,
    prompt_dialect_option,
    sampling_of,
    sampling_options,
    system_option,
    tools_option,
    typed,
)

if TYPE_CHECKING:
    from ...approvals import Approve
    from ...models.base import Model
    from ...policy.policy import Policy
    from ...toolbox import Toolbox
    from ...types import Message
    from ...verbs import Sampled
    from ..images import Content
    from ..terminal import Out

HELP = """\
/help         this list
/tools        the tools that the model may call
/model NAME   switch to another model; without NAME, show the current one and how it is prompted
/image FILE   show the model an image with the next question
/retry        ask the last question again
/explain      the exact request of the last question
/save FILE    store the conversation as JSON
/reset        begin a new conversation
/exit         leave (so does Ctrl-D)
Ctrl-C stops an answer; the next one starts where the last whole answer ended."""

PLAIN = ("/help", "/tools", "/reset", "/retry", "/explain")
ARGUMENT = ("/model", "/save", "/image")
"""Commands by themselves, and those that take something behind them; each is a method of Conversation."""
LEAVE = ("/exit", "/quit")
COMMAND = re.compile(r"/(?:[A-Za-z][\w-]*)?")
UNAPPROVED = (
    "the call was not run: a piped line approves nothing, and the lines behind the question were not read. Chat on a "
    "terminal, or allow the call in the policy"
)
"""The error of a piped question whose call needs approval. Somebody may have meant the next line as the answer."""
BANNER_TOOLS = 8
"""The most names of tools that the banner lists."""


@click.command(cls=Command)
@tools_option
@model_option
@prompt_dialect_option
@system_option
@image_option
@sampling_options
@limits_options
@click.option(
    "-c",
    "--continue",
    "go_on",
    is_flag=True,
    help="Continue the last conversation, with its model and tools unless others are given.",
)
@approve_option
@policy_option
def chat(files: tuple[str, ...], go_on: bool, **options: Any) -> None:
    """Chat with a model that may call your functions.

    \b
    toolspeak chat --tools weather.py
    toolspeak chat --model ollama:NAME
    toolspeak chat --continue
    printf 'Hello!\\nAnd goodbye.\\n' | toolspeak chat

    Each line is a question. /help lists the commands. Conversations are saved as JSON in the user's state folder.
    """
    from .. import saved_conversations
    from ..call_approval import approver
    from ..policy_file import policy_for
    from ..terminal import answers
    from ..tool_sources import runnable, toolbox

    with answers(typing=typed()) as out:
        path = saved_conversations.latest() if go_on else saved_conversations.new()
        saved = saved_conversations.read(path) if go_on else None
        messages = saved_conversations.messages(saved, path) if go_on else []
        files = files or saved_conversations.tools(saved)
        box = runnable(toolbox(files))
        policy = policy_for(options["policy_file"], box)
        ask = approver(policy, approve=options["approve"])
        model = model_of_saved(saved, options["model"], options["dialect"])
        talk = ChatSession(out, model, box, ask, options["system"], path, messages)
        talk.policy, talk.files = policy, files
        talk.sampling, talk.limits = sampling_of(options), limits_of(options)
        for image in options["images"]:
            talk.attach(image)
        if go_on:
            talk.note(f"continuing {path}: {number_of(len(messages), 'message')}")
        if talk.interactive:
            talk.note(f"{talk.about}\n/help for help")
        for line in talk.lines():
            if not talk.turn(line):
                break
    if talk.code:
        raise click.exceptions.Exit(talk.code)


class ChatSession:
    """The state of a conversation: its messages, model and tools."""

    def __init__(
        self,
        out: Out,
        model: Model,
        box: Toolbox,
        approve: Approve | None,
        system: str | None,
        path: Path,
        messages: list[Message],
    ) -> None:
        from ..terminal import Progress

        self.out, self.model, self.box, self.approve, self.system = out, model, box, approve, system
        self.path, self.messages = path, messages
        self.sampling: Sampled = {}
        self.limits: dict[str, Any] = {}
        self.policy: Policy | None = None
        self.files: tuple[str, ...] = ()
        self.images: list[str] = []
        self.interactive = typed()
        self.code = 0
        """The exit code, if a piped command failed."""
        self.note = Progress().note

    def lines(self) -> Iterator[str]:
        """Yield the lines that are typed or piped, without empty ones."""
        while True:
            try:
                line = self._line()
            except UnicodeDecodeError as error:
                raise UsageError(
                    f"standard input is not UTF-8: {error.reason} at byte {error.start} of a line"
                ) from None
            if line is None:
                return
            if line := line.strip():
                yield line

    def _line(self) -> str | None:
        if self.interactive:
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401 # pyright: ignore[reportUnusedImport] - gives `input` its line editing
            try:
                return input("> ")
            except EOFError:
                self.out.line("")
                return None
        if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
            return None
        raw = sys.stdin.buffer.readline()
        return raw.decode("utf-8") if raw else None

    @property
    def about(self) -> str:
        """Return a description of the model, of how it is asked for calls, and of the tools."""
        from ...models.tool_calling import calling

        strategy: Any = getattr(calling(self.model), "strategy", None)
        how = f", {strategy.line}" if strategy else ""
        names = [tool.name for tool in self.box]
        more = f" and {len(names) - BANNER_TOOLS} more" if len(names) > BANNER_TOOLS else ""
        listed = f"{number_of(len(names), 'tool')}: {', '.join(names[:BANNER_TOOLS])}{more}" if names else "no tools"
        return f"{self.model.name}{how}\n{listed}"

    def turn(self, line: str) -> bool:
        """Answer a question or run a command. Return False after the command that ends the conversation."""
        word, _, rest = line.partition(" ")
        if line in LEAVE:
            return False
        if word in ARGUMENT or line in PLAIN:
            command: Any = getattr(self, f"_{word[1:]}")
            asks = word == "/retry" and bool(self.messages)
            self._guarded(lambda: command(rest.strip()) if word in ARGUMENT else command(), question=asks)
        elif COMMAND.fullmatch(word):
            self._guarded(lambda: self._unknown(word))
        else:
            self._guarded(lambda: self._ask(self._with_images(line)), question=True)
        return True

    def _unknown(self, word: str) -> None:
        """Raises UsageError, which says what is wrong with a command. A path, such as /etc/hosts, is none."""
        ask = "To ask the model this, put a word before it"
        if word in (*PLAIN, *LEAVE):
            raise UsageError(f"{word}: expected nothing behind it. {ask}")
        similar = did_you_mean(near(word, (*PLAIN, *ARGUMENT, *LEAVE)))
        raise UsageError(f"there is no {word}.{similar} /help lists the commands. {ask}")

    def _guarded(self, work: Callable[[], None], *, question: bool = False) -> None:
        """Run `work`. An error ends the turn; of a piped question it ends the program, because the next ones may need the
        answer."""
        try:
            work()
        except KeyboardInterrupt:
            if not self.interactive:
                raise
            self.note("stopped")
        except ToolspeakError as error:
            from ..terminal import to_stderr

            if not self.interactive:
                if question:
                    raise
                self.code = self.code or code_of(error)
            to_stderr(f"error: {error}")

    # -------------------------------------------------------------- commands

    def _help(self) -> None:
        self.note(HELP)

    def _tools(self) -> None:
        rows = [f"{tool.name}: {tool.description.partition(chr(10))[0]}" for tool in self.box]
        self.note("\n".join(rows) or "no tools: start with --tools FILE")

    def _model(self, name: str) -> None:
        if name:
            self.model = model_by_name(name)
        self.note(self.about)

    def _reset(self) -> None:
        from .. import saved_conversations

        self.messages, self.path = [], saved_conversations.new()
        self.note("a new conversation")

    def _retry(self) -> None:
        place = self._last_question()
        before, question = self.messages, self.messages[place].get("content") or ""
        self.messages = before[:place]
        try:
            self._ask(question)
        except (ToolspeakError, KeyboardInterrupt):
            self.messages = before  # the old answer stays in the file until the new one is complete
            raise

    def _image(self, name: str) -> None:
        if not name:
            raise UsageError("/image: expected the name of a file")
        self.attach(name)
        self.note("with the next question: " + ", ".join(self.images))

    def attach(self, name: str) -> None:
        """Add an image to the next question. Raises UsageError for a file that is not an image."""
        from ..images import with_images

        with_images("", [name])
        self.images.append(name)

    def _with_images(self, line: str) -> Content:
        """Return the question with the images that were attached to it."""
        from ..images import with_images

        content, self.images = with_images(line, self.images), []
        return content

    def _explain(self) -> None:
        from ...explain import explain

        messages = self.messages[: self._last_question() + 1]
        self.note(str(explain(messages, tools=self.box, model=self.model, **self.sampling)))

    def _save(self, name: str) -> None:
        from .. import saved_conversations

        path = Path(name).expanduser()
        if not name or path.exists():
            why = f"{name} exists already" if name else "no name was given"
            raise UsageError(f"/save: expected the name of a new file; {why}")
        try:
            saved_conversations.write(path, self.messages, self.model.name, self.files)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}") from None
        self.note(f"saved {number_of(len(self.messages), 'message')} in {path}")

    def _last_question(self) -> int:
        """Return the index of the last question in the messages. Raises UsageError if there is none."""
        places = [i for i, message in enumerate(self.messages) if message.get("role") == "user"]
        if not places:
            raise UsageError("no question was asked yet")
        return places[-1]

    # -------------------------------------------------------------- asking

    def _ask(self, content: Content) -> None:
        from .. import saved_conversations
        from ..run_view import Show, answer, show_open, without_pending

        begin: list[Message] = [{"role": "system", "content": self.system}] if self.system and not self.messages else []
        question: list[Message] = [*self.messages, *begin, {"role": "user", "content": content}]
        show = Show(
            self.out,
            live=self.out.terminal or not len(self.box),
            asks=self.approve is not None,
            rest="/save has all of it",
        )
        try:
            reply = answer(
                question, self.box, show, model=self.model, approve=self.approve, policy=self.policy, limits=self.limits,
                **self.sampling,
            )  # fmt: skip
        finally:
            self.out.end_line()
        show_open(reply)
        self.messages = without_pending(reply)
        try:
            saved_conversations.write(self.path, self.messages, self.model.name, self.files)
        except OSError as error:
            self.note(f"the conversation cannot be stored in {self.path}: {error.strerror}")
        if reply.pending and not self.interactive:
            raise ToolspeakError(UNAPPROVED)

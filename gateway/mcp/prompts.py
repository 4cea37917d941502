"""What a user may ask an agent to do at the two ends of a session."""

from typing import Annotated

from mcp.server.mcpserver import MCPServer
from pydantic import Field

TASK_CHARS_MAX = 2_000


def add_prompts(server: MCPServer) -> None:
    """Offer the library's prompts on a server."""

    @server.prompt(
        name="start_of_session",
        title="Start of session",
        description="Take up what the library knows before work begins.",
    )
    def start_of_session(
        session: Annotated[str, Field(description="A stable name of this conversation.")],
        task: Annotated[
            str, Field(description="What is to be done, in a sentence or two.")
        ] = "whatever was left unfinished",
    ) -> str:
        return (
            f"Before you begin: call desk_refresh with session {session[:256]!r} and a subject "
            f"for this task: {task[:TASK_CHARS_MAX]}\n"
            "Read the block that it returns as reference data from earlier work. Where it names "
            "decisions or unfinished work that bear on the task, say so in a few lines, with the "
            "ids of the records, and open what you need word for word. Where nothing bears on "
            "it, say that, and go on."
        )

    @server.prompt(
        name="end_of_session",
        title="End of session",
        description="Leave what the next session needs.",
    )
    def end_of_session(
        session: Annotated[str, Field(description="The name of this conversation.")],
    ) -> str:
        return (
            f"The session {session[:256]!r} ends. Call remember once for each thing that the next "
            "session needs: what was decided and why (type decision), what is unfinished and "
            "where to go on (todo), what was learned the hard way (finding), rules the user set "
            "(rule, critical if it must never be broken). Each is understandable without this "
            "conversation and holds no secrets. Name in replaces what no longer holds."
        )

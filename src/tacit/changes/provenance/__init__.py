"""Where the words of a proposed skill came from: the user and the agent's deeds, or a tool.

Text planted in tool output becomes a standing order once it is distilled into a skill. So what a
skill tells later agents to do must stand in what the user said or in what the agent itself did;
what stands only in what a tool printed is refused, or waits for a person.
"""

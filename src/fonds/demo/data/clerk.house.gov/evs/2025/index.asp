<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01 Transitional//EN">
<HTML>
<HEAD>
<TITLE>U.S. House of Representatives Roll Call Votes 119th Congress - 1st Session (2025)</TITLE>
</HEAD>
<BODY BGCOLOR="#FFFFFF">
<H2 ALIGN="CENTER">U.S. House of Representatives Roll Call Votes<BR>
 119th Congress - 1st Session (2025)</H2>
<P>Votes are listed by roll call number, newest first.</P>
<TABLE CELLPADDING="5" CELLSPACING="0" BORDER="1" WIDTH="100%">
<TR><TH>Roll</TH><TH>Date</TH><TH>Issue</TH><TH>Question</TH><TH>Result</TH><TH>Title/Description</TH></TR>
<TR><TD><A HREF="http://clerk.house.gov/cgi-bin/vote.asp?year=2025&rollnumber=362">362</A></TD>
<TD><FONT FACE="Arial" SIZE="-1">9-Dec</FONT></TD>
<TD><FONT FACE="Arial" SIZE="-1"><A HREF="https://www.congress.gov/bill/119th-congress/house-bill/2101">H R 2101</A></FONT></TD>
<TD><FONT FACE="Arial" SIZE="-1">On Passage</FONT></TD>
<TD ALIGN="CENTER"><FONT FACE="Arial" SIZE="-1">P</FONT></TD>
<TD><FONT FACE="Arial" SIZE="-1">Harbor Dredging Transparency Act</FONT></TD></TR>
<TR><TD><A HREF="http://clerk.house.gov/cgi-bin/vote.asp?year=2025&rollnumber=361">361</A></TD>
<TD><FONT FACE="Arial" SIZE="-1">9-Dec</FONT></TD>
<TD><FONT FACE="Arial" SIZE="-1">&nbsp;</FONT></TD>
<TD><FONT FACE="Arial" SIZE="-1">&nbsp;</FONT></TD>
<TD ALIGN="CENTER"><FONT FACE="Arial" SIZE="-1">&nbsp;</FONT></TD>
<TD><FONT FACE="Arial" SIZE="-1">This vote was vacated by unanimous consent on December 9, 2025.</FONT></TD></TR>
</TABLE>
<P><A HREF="ROLL_300.asp">Roll Calls 300 to 399</A></P>
<P><A HREF="ROLL_000.asp">Roll Calls 001 to 99</A></P>
</BODY>
</HTML>

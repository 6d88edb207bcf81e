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
<TR><TD><A HREF="http://clerk.house.gov/cgi-bin/vote.asp?year=2025&rollnumber=2">2</A></TD>
<TD><FONT FACE="Arial" SIZE="-1">3-Jan</FONT></TD>
<TD><FONT FACE="Arial" SIZE="-1">&nbsp;</FONT></TD>
<TD><FONT FACE="Arial" SIZE="-1">Election of the Speaker</FONT></TD>
<TD ALIGN="CENTER"><FONT FACE="Arial" SIZE="-1">A</FONT></TD>
<TD><FONT FACE="Arial" SIZE="-1"></FONT></TD></TR>
</TABLE>
</BODY>
</HTML>
